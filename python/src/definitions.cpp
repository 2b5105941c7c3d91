#include "definitions.hpp"

#include "caffe/io/expand/expand.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/solver_overrides.hpp"
#include "caffe/io/solver_position.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/io/upgrade_solver.hpp"
#include "caffe/solver_factory.hpp"

namespace caffe::python {
namespace {

constexpr const char* kMessageName = "the message";

py::bytes ReadNetBytes(const py::object& definition, bool lenient) {
  const Definition source(definition, "net", "caffe.NetParameter");
  std::string bytes;
  {
    const GilReleased release;
    const LenientReading reading(lenient);
    bytes = source.ReadNet().SerializePartialAsString();
  }
  return bytes;
}

// The text of a net, or of a solver with nets in it, without includes, blocks and defaults.
py::bytes ExpandedText(const py::object& file, bool is_solver) {
  const std::string path = PathOf(file);
  std::string text;
  {
    const GilReleased release;
    CheckReadable(path);
    text = ReadDefinitionText(
               path, is_solver ? *SolverParameter::descriptor() : *NetParameter::descriptor())
               .text();
  }
  return text;
}

py::bytes ReadSolverBytes(const py::object& definition, const std::vector<std::string>& overrides,
                          bool lenient) {
  const Definition source(definition, "solver", "caffe.SolverParameter");
  std::string bytes;
  {
    const GilReleased release;
    const LenientReading reading(lenient);
    bytes = ReadSolver(source, overrides).param.SerializePartialAsString();
  }
  return bytes;
}

std::string SolverType(const py::object& definition, const std::vector<std::string>& overrides,
                       bool lenient) {
  const Definition source(definition, "solver", "caffe.SolverParameter");
  const GilReleased release;
  const LenientReading reading(lenient);
  return ReadSolver(source, overrides).param.type();
}

}  // namespace

Definition::Definition(const py::object& argument, const std::string& what,
                       const std::string& kind) {
  if (!py::hasattr(argument, "SerializePartialToString")) {
    file_ = PathOf(argument);
    Require(!file_.empty(), what, ": the file's name is empty; give a file or a ", kind);
    return;
  }
  const auto given = py::cast<std::string>(argument.attr("DESCRIPTOR").attr("full_name"));
  Require(given == kind, what, " is a message of type ", given, "; give a file's name or a ", kind);
  bytes_ = py::cast<std::string>(py::bytes(argument.attr("SerializePartialToString")()));
}

template <typename Message>
Message Definition::Parse() const {
  Message message;
  Require(message.ParsePartialFromString(bytes_), kMessageName, " is not a ",
          message.GetTypeName());
  return message;
}

NetParameter Definition::ReadNet() const {
  if (!file_.empty()) {
    CheckReadable(file_);
    return ReadNetText(file_);
  }
  NetParameter net = Parse<NetParameter>();
  UpgradeNet(kMessageName, &net);
  return net;
}

SolverParameter Definition::ReadSolver() const {
  if (!file_.empty()) {
    CheckReadable(file_);
    return ReadSolverText(file_);
  }
  SolverParameter solver = Parse<SolverParameter>();
  UpgradeSolver(kMessageName, &solver);
  return solver;
}

OverriddenSolver ReadSolver(const Definition& definition,
                            const std::vector<std::string>& overrides) {
  OverriddenSolver solver;
  solver.param = definition.ReadSolver();
  WithSolverPosition(definition.file(), [&] {
    for (const std::string& text : overrides) {
      for (std::string& change : OverrideSolver(text, &solver.param, &solver.net_file))
        solver.changes.push_back(std::move(change));
    }
  });
  return solver;
}

void BindDefinitions(py::module_& module) {
  module.def("_read_net", ReadNetBytes, py::arg("definition"), py::arg("lenient") = false);
  module.def("_expanded_text", ExpandedText, py::arg("file"), py::arg("is_solver") = false);
  module.def("_read_solver", ReadSolverBytes, py::arg("definition"), py::arg("overrides"),
             py::arg("lenient") = false);
  module.def("_solver_type", SolverType, py::arg("definition"), py::arg("overrides"),
             py::arg("lenient") = false);
}

}  // namespace caffe::python
