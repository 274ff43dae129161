"""Request bodies: strict types, checked once at the door."""
