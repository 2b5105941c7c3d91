// Reads nets and solvers from files and upgrades definitions of any age or fork.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

enum class DefinitionKind { kNet, kSolver, kUnknown };

// The kind of definition in a prototxt, even if it does not parse completely. kUnknown also for a
// file that is not regular, because a pipe can be read only once.
CAFFE_EXPORT DefinitionKind KindOfDefinition(const std::string& path);

// Reads a net definition (.prototxt) and upgrades it.
CAFFE_EXPORT NetParameter ReadNetText(const std::string& path);

// ReadNetText() for the file in this field of a solver. Throws InvalidArgument if there is no such
// file.
CAFFE_EXPORT NetParameter ReadNetOfSolver(const char* field, const std::string& path);

// Sets the state with which the layers' include and exclude rules are compared; adds `stages` to
// those of the definition.
CAFFE_EXPORT void SetNetState(Phase phase, int level, const std::vector<std::string>& stages,
                              NetParameter* net);

// Reads a net with weights (.caffemodel) of BVLC Caffe, NVCaffe or SSD, and upgrades it.
CAFFE_EXPORT NetParameter ReadNetBinary(const std::string& path);
// The part of it after parsing: checks and upgrades the net.
void FinishNetBinary(const std::string& path, NetParameter* net);

// Reads a solver definition (.prototxt), and upgrades it and the nets in it.
CAFFE_EXPORT SolverParameter ReadSolverText(const std::string& path);

}  // namespace caffe
