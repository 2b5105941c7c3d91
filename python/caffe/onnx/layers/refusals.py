"""Layer types that no model can have, and the reasons."""
from ..registry import refused

refused("Python", because="its code is that of the net's author, which ONNX's operators do not tell")
refused("TRT", because="an engine of TensorRT is another program's runtime")
refused("CTCDecoder", because="its search keeps and merges prefixes, for which there is no operator")
refused("BoxAnnotatorOHEM", "DetectNetTransformation", "Mixup", because="it prepares training; a net for deployment does without")
