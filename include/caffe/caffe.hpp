// Includes everything that an application needs.
#pragma once

#include <string>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/detection_score.hpp"
#include "caffe/dtype.hpp"
#include "caffe/error.hpp"
#include "caffe/gradient_check.hpp"
#include "caffe/layer.hpp"
#include "caffe/layer_catalogue.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/live_line.hpp"
#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/plan_times.hpp"
#include "caffe/plugin.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/ranks.hpp"
#include "caffe/run_folder.hpp"
#include "caffe/shape.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/trace.hpp"
#include "caffe/training_observer.hpp"
#include "caffe/training_plan.hpp"
