// Reads net and solver definitions and upgrades old formats.
#pragma once

#include <string>

#include "../common.hpp"
#include "caffe/proto/caffe.pb.h"

CAFFE_BVLC_BEGIN
// All throw caffe::Error, with file, line and column where known.
void ReadNetParamsFromTextFileOrDie(const string& param_file, NetParameter* param);
void ReadNetParamsFromBinaryFileOrDie(const string& param_file, NetParameter* param);
void ReadSolverParamsFromTextFileOrDie(const string& param_file, SolverParameter* param);

// True if UpgradeNetAsNeeded would change `net_param`.
bool NetNeedsUpgrade(const NetParameter& net_param);
// Always returns true: throws if the definition cannot be upgraded.
bool UpgradeNetAsNeeded(const string& param_file, NetParameter* param);
bool SolverNeedsTypeUpgrade(const SolverParameter& solver_param);
bool UpgradeSolverAsNeeded(const string& param_file, SolverParameter* param);

CAFFE_BVLC_END
