// Includes everything that a program written for Caffe expects. The header lives in a folder of its
// own (include/caffe/compat), which must precede Cortado's in the order of -I.
#pragma once

#include "blob.hpp"
#include "caffe/proto/caffe.pb.h"
#include "common.hpp"
#include "filler.hpp"
#include "layer.hpp"
#include "layer_factory.hpp"
#include "net.hpp"
#include "parallel.hpp"
#include "solver.hpp"
#include "solver_factory.hpp"
#include "util/benchmark.hpp"
#include "util/io.hpp"
#include "util/upgrade_proto.hpp"
