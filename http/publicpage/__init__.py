"""What anybody may read of a status page, made of what `storage/rules/page` lets out."""
