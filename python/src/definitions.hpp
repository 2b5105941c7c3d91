// Definitions of nets and solvers as Python gives them: the name of a file, or a message.
#pragma once

#include <string>
#include <vector>

#include "bindings.hpp"

namespace caffe::python {

// Made with the interpreter's lock; read without it.
class Definition {
 public:
  // `argument`: a file's name (str, bytes, os.PathLike) or a message of the type `kind`
  // ("caffe.NetParameter"), complete or not. `what` names it in errors. Throws InvalidArgument for
  // another message, and Python's TypeError for what is no name.
  Definition(const py::object& argument, const std::string& what, const std::string& kind);

  // Empty for a message.
  const std::string& file() const { return file_; }
  // Brought into today's form. Throws IoError for a file that cannot be read.
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
  std::string net_file;              // where the net in net_param was read for an override
  std::vector<std::string> changes;  // "base_lr: 0.01 -> 0.1"
};

// `overrides`: "path=value", as --set takes them (caffe/io/solver_overrides.hpp).
OverriddenSolver ReadSolver(const Definition& definition,
                            const std::vector<std::string>& overrides);

}  // namespace caffe::python
