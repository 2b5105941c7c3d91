// The name that Caffe gives signal_handler.hpp.
#pragma once

#include "signal_handler.hpp"
