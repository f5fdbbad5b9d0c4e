"""Pictures and pages for people: color maps, contact sheets, HTML."""
