// Definitions of nets and solvers from files, brought into today's form.
#pragma once

#include <string>

#include "../common.hpp"
#include "caffe/proto/caffe.pb.h"

CAFFE_BVLC_BEGIN
// All throw caffe::Error, with the file, line and column where there are some.
void ReadNetParamsFromTextFileOrDie(const string& param_file, NetParameter* param);
void ReadNetParamsFromBinaryFileOrDie(const string& param_file, NetParameter* param);
void ReadSolverParamsFromTextFileOrDie(const string& param_file, SolverParameter* param);

// Whether UpgradeNetAsNeeded would change it.
bool NetNeedsUpgrade(const NetParameter& net_param);
// Always true: what cannot be upgraded throws.
bool UpgradeNetAsNeeded(const string& param_file, NetParameter* param);
bool SolverNeedsTypeUpgrade(const SolverParameter& solver_param);
bool UpgradeSolverAsNeeded(const string& param_file, SolverParameter* param);

CAFFE_BVLC_END
