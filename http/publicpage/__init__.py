"""What anybody may read of a status page: what `storage/status_pages/rules/status_page` admits."""
