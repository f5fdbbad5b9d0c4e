"""Worker processes and the fork server that starts them."""
