"""Articulated assets: links and joints of URDF and MJCF become parts with limits, handles and contact."""
