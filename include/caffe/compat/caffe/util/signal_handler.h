// Caffe's name for signal_handler.hpp.
#pragma once

#include "signal_handler.hpp"
