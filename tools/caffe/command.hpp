// The commands of the program `caffe`. Each command has its own file, which registers the command
// and declares its options; no list has to be edited to add a command or an option.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace caffe::tools {

// The options of a command are members, which its constructor declares:
//
//   class Hello : public Command {
//    public:
//     explicit Hello(CLI::App& app) {
//       app.add_option("--name", name_, "Whom to greet")->type_name("NAME");
//     }
//     void Run() override { std::cout << "Hello " << name_ << "\n"; }
//
//    private:
//     std::string name_ = "world";
//   };
//   const CommandRegistrar<Hello> hello_registrar(
//       "hello", {.purpose = Purpose::kProgram, .summary = "greet somebody"});
class Command {
 public:
  virtual ~Command() = default;
  // Throws on failure.
  virtual void Run() = 0;
};

// The parts of the list of `caffe help`, in this order.
enum class Purpose { kTrain, kUse, kData, kConvert, kInspect, kProgram };

// The heading of a part of the list.
const char* HeadingOf(Purpose purpose);

// The text of `caffe help` about a command, without its options.
struct CommandHelp {
  Purpose purpose;
  std::string summary;   // one line for the list of commands
  std::string about;     // full sentences, without line breaks
  std::string examples;  // one per line
};

struct CommandEntry {
  CommandHelp help;
  std::unique_ptr<Command> (*make)(CLI::App& app);
};

// All commands, sorted by name.
const std::map<std::string, CommandEntry>& Commands();

std::vector<std::string> CommandNames();

// The first word of the names of several commands, as in "data" for data-import and data-stat;
// empty if the command is in no group.
std::string GroupOf(const std::string& name);
// The commands of a group such as "data"; none for the name of a command.
std::vector<std::string> CommandsOfGroup(const std::string& group);
// The name as users type it: "data import" for data-import.
std::string WordsOf(const std::string& name);

// Throws InvalidArgument, which suggests the nearest name, if no command has this name.
void RequireCommand(const std::string& name);

void RegisterCommand(const std::string& name, const CommandEntry& entry);

template <typename T>
struct CommandRegistrar {
  CommandRegistrar(const std::string& name, const CommandHelp& help) {
    RegisterCommand(name, {help, [](CLI::App& app) -> std::unique_ptr<Command> {
                             return std::make_unique<T>(app);
                           }});
  }
};

}  // namespace caffe::tools
