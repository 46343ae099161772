"""The public status page: HTML, feeds, badge, subscription forms."""
