"""What the server can put behind its routes."""
