// Names of layers and options in PyTorch, Keras and TensorFlow, with their names here.
#pragma once

#include <string_view>

namespace caffe {

struct NameElsewhere {
  std::string_view name;  // in lower case
  std::string_view here;  // empty: there is no such layer, and similar names mean something else
};

// A name may stand for several things; the first one that is a known name here counts.
inline constexpr NameElsewhere kNamesElsewhere[] = {
    // layer types
    {"linear", "InnerProduct"},
    {"dense", "InnerProduct"},
    {"fullyconnected", "InnerProduct"},
    {"fc", "InnerProduct"},
    {"conv1d", "Convolution"},
    {"conv2d", "Convolution"},
    {"conv3d", "Convolution"},
    {"depthwiseconv2d", "ConvolutionDepthwise"},
    {"convtranspose2d", "Deconvolution"},
    {"conv2dtranspose", "Deconvolution"},
    {"maxpool", "Pooling"},
    {"maxpool2d", "Pooling"},
    {"maxpooling2d", "Pooling"},
    {"avgpool", "Pooling"},
    {"avgpool2d", "Pooling"},
    {"averagepooling2d", "Pooling"},
    {"adaptiveavgpool2d", "Pooling"},
    {"globalaveragepooling2d", "Pooling"},
    {"batchnorm2d", "BatchNorm"},
    {"batchnormalization", "BatchNorm"},
    {"localresponsenorm", "LRN"},
    {"dropout2d", "Dropout"},
    {"leakyrelu", "ReLU"},
    {"embedding", "Embed"},
    {"upsampling2d", "Upsample"},
    {"bmm", "MatMul"},
    {"channelshuffle", "ShuffleChannel"},
    {"cat", "Concat"},
    {"concatenate", "Concat"},
    {"add", "Eltwise"},
    {"crossentropyloss", "SoftmaxWithLoss"},
    {"crossentropy", "SoftmaxWithLoss"},
    {"bcewithlogitsloss", "SigmoidCrossEntropyLoss"},
    {"mseloss", "EuclideanLoss"},
    {"dataloader", "Data"},
    {"groupnorm", ""},
    // fields of a solver
    {"lr", "base_lr"},
    {"learning_rate", "base_lr"},
    {"epochs", "max_epoch"},
    {"num_epochs", "max_epoch"},
    {"optimizer", "type"},
    {"scheduler", "lr_policy"},
    {"milestones", "stepvalue"},
    {"step_size", "stepsize"},
    // options of layers and parameters
    {"lr", "lr_mult"},
    {"units", "num_output"},
    {"filters", "num_output"},
    {"out_channels", "num_output"},
    {"out_features", "num_output"},
    {"padding", "pad"},
    {"strides", "stride"},
};

}  // namespace caffe
