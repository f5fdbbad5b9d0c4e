"""Images and HTML pages that show data: color maps, contact sheets, page templates."""
