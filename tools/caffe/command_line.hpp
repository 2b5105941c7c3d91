// The command line of `caffe`: CLI11, with the spellings that Caffe's scripts use.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/caffe/command.hpp"

namespace caffe::tools {

class CommandLine {
 public:
  // Declares the options of all commands.
  CommandLine();

  // `words` are the arguments without the program's name, spelled as gflags allows: one dash or
  // two; -flag=value or -flag value; -flag, -noflag and -flag=false for booleans; flags before the
  // command; -flagfile=FILE. The last of several values counts. A flag that only other commands
  // have is ignored with a warning, because Caffe's flags belong to all commands. Two words may
  // name a command: "data import" is data-import. Throws InvalidArgument.
  void Parse(const std::vector<std::string>& words);

  // One sentence for each flag that Parse ignored.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // One line for each flag that was added from the user's configuration.
  const std::vector<std::string>& notes() const { return notes_; }
  // Runs the command, or prints the help or version requested. Returns the exit status.
  int Run();

 private:
  // A flag as written, without its dashes.
  struct Flag {
    std::string name;
    std::optional<std::string> value;
  };

  void Separate(const std::vector<std::string>& words);
  Flag ParseFlag(const std::string& word) const;
  const CLI::Option* Find(const std::string& flag) const;
  std::vector<std::string> Takers(const std::string& flag) const;
  void JoinWords(size_t first);
  void FindCommand();
  std::string FlagOfNumber(const std::string& word) const;
  void AddDefaults(std::vector<std::string>* for_command);
  void CheckPlainWords() const;
  void AddFlag(const Flag& flag, std::vector<std::string>* for_all,
               std::vector<std::string>* for_command);
  [[noreturn]] void ThrowUnknownFlag(const Flag& flag) const;
  void ParseByCli11(std::vector<std::string> words);

  CLI::App app_;
  CLI::App* command_app_ = nullptr;  // options of the selected command
  std::map<std::string, std::unique_ptr<Command>> commands_;
  std::vector<Flag> flags_;
  std::vector<std::string> plain_words_;  // neither flags nor their values; the command comes first
  std::vector<std::string> warnings_, notes_;
  std::string answer_;  // text to print for --help or --version
};

}  // namespace caffe::tools
