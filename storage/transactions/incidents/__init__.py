"""What breaks is written down, told, acknowledged and explained: one room for all who do so."""
