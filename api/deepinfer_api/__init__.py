"""HTTP server of open-deepinfer."""
