// Definitions of nets and solvers from Python: a file name, or a message.
#pragma once

#include <string>
#include <vector>

#include "bindings.hpp"

namespace caffe::python {

// Construct with the interpreter's lock held; the other methods do not need it.
class Definition {
 public:
  // `argument` is a file name (str, bytes, os.PathLike) or a message of the type `kind`
  // ("caffe.NetParameter"), which may lack required fields. `what` names it in errors. Throws
  // InvalidArgument for another message, and Python's TypeError for other objects.
  Definition(const py::object& argument, const std::string& what, const std::string& kind);

  // Empty for a message.
  const std::string& file() const { return file_; }
  // Upgrades to the current format. Throws IoError for a file that cannot be read.
  NetParameter ReadNet() const;
  SolverParameter ReadSolver() const;

 private:
  template <typename Message>
  Message Parse() const;

  std::string file_;
  std::string bytes_;
};

struct OverriddenSolver {
  SolverParameter param;
  std::string net_file;              // source of net_param if an override read the net
  std::vector<std::string> changes;  // "base_lr: 0.01 -> 0.1"
};

// `overrides` have the form "path=value" of --set (caffe/io/solver_overrides.hpp).
OverriddenSolver ReadSolver(const Definition& definition,
                            const std::vector<std::string>& overrides);

}  // namespace caffe::python
