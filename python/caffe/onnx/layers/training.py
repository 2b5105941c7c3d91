"""Layers that a model for inference omits."""
from ..registry import left_out

left_out("Accuracy", "DetectionEvaluate", because="it measures")
left_out("CenterLoss", "ContrastiveLoss", "CTCLoss", "CtcLoss", "DiceLoss", "EuclideanLoss", "FocalLoss", "HingeLoss", "InfogainLoss",
         "KLDivLoss",
         "L1Loss", "MultiBoxLoss", "MultinomialLogisticLoss", "RegionLoss", "SigmoidCrossEntropyLoss", "SmoothL1Loss", "SmoothL1LossOHEM",
         "SoftmaxWithFocalLoss", "SoftmaxWithLoss", "SoftmaxWithLossOHEM", "TripletLoss", "WarpCTC", "WarpCTCLoss", "Yolov3", because="it is a loss")
left_out("HDF5Output", because="it writes a file")
