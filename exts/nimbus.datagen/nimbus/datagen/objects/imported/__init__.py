"""Object library made from a user's folder of meshes."""
