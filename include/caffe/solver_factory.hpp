// Solver types by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/solver.hpp"

namespace caffe {

// Sorted: the values that SolverParameter.type may have.
std::vector<std::string> SolverTypeList();

// Reads a solver prototxt and builds the solver.
std::unique_ptr<Solver> MakeSolver(const std::string& file, SolverOptions options = {});

}  // namespace caffe
