"""Post-processing of DetectNet: turns its grids into boxes and scores the boxes."""
