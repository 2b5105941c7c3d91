// caffe help: lists the commands, or the options of one command.
#include <algorithm>
#include <iostream>

#include "tools/caffe/command.hpp"
#include "tools/caffe/help_format.hpp"

namespace caffe::tools {
namespace {

class Help : public Command {
 public:
  explicit Help(CLI::App& app) : app_(app) {
    app.add_option("COMMAND", command_, "The command to explain; without it, the list of commands")
        ->type_name(CLI::detail::join(CommandNames(), "|"));
  }

  void Run() override {
    std::replace(command_.begin(), command_.end(), ' ', '-');  // help "data import"
    if (command_.empty()) {
      std::cout << FormatCommands();
    } else if (!CommandsOfGroup(command_).empty()) {
      std::cout << FormatGroup(command_);
    } else {
      RequireCommand(command_);
      std::cout << FormatCommandHelp(command_, *app_.get_parent()->get_subcommand(command_));
    }
  }

 private:
  const CLI::App& app_;
  std::string command_;
};

const CommandRegistrar<Help> help_registrar(
    "help", {.purpose = Purpose::kProgram,
             .summary = "explain a command and its options",
             .about = "Lists the commands, or says what one does, with "
                      "its options and examples.",
             .examples = "caffe help\n"
                         "caffe help train"});

}  // namespace
}  // namespace caffe::tools
