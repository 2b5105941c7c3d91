// The commands of the program `caffe`. Each has a file of its own, which registers it and declares
// its options; adding a command or an option edits no list.
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
//     explicit Hello(CLI::App& app) { app.add_option("--name", name_, "Whom to
//     greet")->type_name("NAME"); } void Run() override { std::cout << "Hello " << name_ << "\n"; }
//    private:
//     std::string name_ = "world";
//   };
//   const CommandRegistrar<Hello> hello_registrar("hello", {.summary = "greet somebody"});
class Command {
 public:
  virtual ~Command() = default;
  // Throws on failure.
  virtual void Run() = 0;
};

// What `caffe help` says about a command beside its options.
struct CommandHelp {
  std::string summary;   // one line for the list of commands
  std::string about;     // sentences, without line breaks
  std::string examples;  // a line each
};

struct CommandEntry {
  CommandHelp help;
  std::unique_ptr<Command> (*make)(CLI::App& app);
};

// By name, sorted.
const std::map<std::string, CommandEntry>& Commands();

std::vector<std::string> CommandNames();

// The word that begins the names of several commands, as "data" those of data-import and data-stat;
// empty where the name begins with none.
std::string GroupOf(const std::string& name);
// The commands of such a group.
std::vector<std::string> CommandsOfGroup(const std::string& group);
// As one writes it: "data import" for data-import.
std::string WordsOf(const std::string& name);

// Throws InvalidArgument, with the nearest name, where there is none of this name.
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
