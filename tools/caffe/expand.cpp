// caffe expand: writes out the includes, blocks and defaults of a net.
#include "caffe/io/expand/expand.hpp"

#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/net_files.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/model_folder.hpp"
#include "tools/caffe/own_files.hpp"

namespace caffe::tools {
namespace {

class Expand : public Command {
 public:
  explicit Expand(CLI::App& app) {
    app.add_option("FILE", file_, "The prototxt of a net or a solver");
    app.add_option("--output", output_, "The prototxt to write, in place of standard output")
        ->type_name("FILE.prototxt");
    app.add_flag("--force", force_, "Overwrite an existing file");
  }

  void Run() override {
    Require(!file_.empty(), "FILE is missing; give the prototxt of a net");
    if (!force_) RequireNewFile(output_);
    std::error_code not_there;
    Require(output_.empty() || !std::filesystem::equivalent(file_, output_, not_there), output_,
            ": is the net to expand, which would be lost; give another --output");
    RequireNoFolder(file_, "train_val.prototxt");
    const bool is_solver = KindOfDefinition(file_) == DefinitionKind::kSolver;
    // For errors: a text with a mistake is not written.
    if (is_solver)
      ReadSolverText(file_);
    else
      ReadNetText(file_);
    const SourceText text = ReadDefinitionText(
        file_, is_solver ? *SolverParameter::descriptor() : *NetParameter::descriptor());
    if (output_.empty())
      std::cout << text.text();
    else
      WriteFileAtomically(output_, text.text());
  }

 private:
  std::string file_, output_;
  bool force_ = false;
};

const CommandRegistrar<Expand> expand_registrar(
    "expand",
    {.purpose = Purpose::kConvert,
     .summary = "write a net without its includes, blocks and defaults",
     .about =
         "Prints the net that training and planning build of a short one (docs/short_nets.md): "
         "layers only, as other programs read them. A net without include, block, use and "
         "defaults is printed as it is.",
     .examples = "caffe expand train_val.prototxt\n"
                 "caffe expand resnet20.prototxt --output=plain.prototxt"});

}  // namespace
}  // namespace caffe::tools
