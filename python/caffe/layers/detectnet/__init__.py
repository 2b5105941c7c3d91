"""What DetectNet does after its last layer: boxes from grids, and their score."""
