// Nets and solvers from files, brought into today's form whatever their age or fork.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

enum class DefinitionKind { kNet, kSolver, kUnknown };

// What a prototxt defines, whether it parses as a whole or not. kUnknown also for what is no
// regular file: a pipe can be read only once.
CAFFE_EXPORT DefinitionKind KindOfDefinition(const std::string& path);

// A net definition (.prototxt), upgraded.
CAFFE_EXPORT NetParameter ReadNetText(const std::string& path);

// ReadNetText() of the file that this field of a solver names. Throws InvalidArgument where there
// is no such file.
CAFFE_EXPORT NetParameter ReadNetOfSolver(const char* field, const std::string& path);

// Sets the state that the layers' include and exclude rules are compared with; `stages` are added
// to those that the definition has.
CAFFE_EXPORT void SetNetState(Phase phase, int level, const std::vector<std::string>& stages,
                              NetParameter* net);

// A net with weights (.caffemodel) of BVLC Caffe, NVCaffe or SSD, upgraded.
CAFFE_EXPORT NetParameter ReadNetBinary(const std::string& path);

// A solver definition (.prototxt), upgraded with the nets inside it.
CAFFE_EXPORT SolverParameter ReadSolverText(const std::string& path);

}  // namespace caffe
