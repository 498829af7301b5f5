"""What has been measured: one text file a cell."""
