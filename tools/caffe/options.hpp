// Options that several commands of `caffe` share. An option of one command is declared in that
// command's file.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/io/data_inputs.hpp"
#include "caffe/net.hpp"

namespace caffe::tools {

// Declare --model and --solver; the file may also be the word after the command. Whether it was
// given is for the command to check: RequireModel.
CLI::Option* AddModel(CLI::App& app, std::string* model);
CLI::Option* AddSolver(CLI::App& app, std::string* solver);
void AddWeights(CLI::App& app, std::string* weights);
// At least 1.
void AddIterations(CLI::App& app, int* iterations);
// The same, or "all".
void AddIterationsOrAll(CLI::App& app, int* iterations, bool* all);

// Which layers ranks split: "auto", or "none" beside those that say so themselves.
void AddParallel(CLI::App& app, std::string* parallel);

// The result as one JSON document, alone on standard output.
void AddJsonFlag(CLI::App& app, bool* json);

// --plugin. LoadGivenPlugins() loads those of the command line, before the command runs.
void AddPlugins(CLI::App& app);
void LoadGivenPlugins();

// --max_decoded_mb, of all commands: see caffe/decode_limit.hpp.
void AddDecodeLimit(CLI::App& app);

// Throws InvalidArgument for an empty name.
void RequireModel(const std::string& model);

// For which state, and how, a net is built.
struct NetFlags {
  Phase phase = TRAIN;
  int level = 0;
  std::vector<std::string> stages;
  std::optional<Precision> precision;  // none: the solver's field, or FP32
  std::string calibration;             // see NetOptions
  int64_t memory_limit = 0;            // in MiB; 0: the solver's field, or none
  std::vector<std::string> overrides;  // "path=value": see io/overrides.hpp
  std::vector<std::string> inputs;     // "blob=N,C,H,W": see io/data_inputs.hpp
  bool lenient = false;                // see NetOptions
  bool needs_data = true;              // false: inputs stand in for data that is not there

  // Each command declares those that it obeys.
  void AddPhase(CLI::App& app);
  void AddState(CLI::App& app);  // --level, --stage
  CLI::Option* AddPrecision(CLI::App& app);
  void AddCalibration(CLI::App& app);
  void AddMemoryLimit(CLI::App& app);
  void AddOverrides(CLI::App& app, const std::string& example);  // --set
  void AddInputs(CLI::App& app);                                 // --input
  // What is not Caffe's own: --plugin, --allow_python, --lenient.
  void AddForeign(CLI::App& app);

  NetOptions ToNetOptions(bool with_backward) const;
  // The net in `file`, with these flags in it. `read_ahead`: what PutInputs() returns. `prepare`
  // may change the definition first.
  std::unique_ptr<Net> MakeNet(const std::string& file, Phase for_phase, const NetOptions& options,
                               int64_t* read_ahead = nullptr,
                               const std::function<void(NetParameter*)>& prepare = nullptr) const;
  // The net in `file` for inference, with the weights of a .caffemodel or several, without which a
  // net that has parameters is refused. `whole_epochs`: see NetOptions.
  std::unique_ptr<Net> MakeTrainedNet(const std::string& file, const std::string& weights,
                                      bool whole_epochs = false) const;
  // Its definition.
  NetParameter ReadNet(const std::string& file, Phase for_phase, int64_t* read_ahead = nullptr,
                       const std::function<void(NetParameter*)>& prepare = nullptr) const;
  // The definition in `file`, with these flags in it. Overrides of a net (net_param..., layer[...])
  // change the net that the solver names: its file is then `net_file`. Inputs are left to
  // PutInputs().
  SolverParameter ReadSolver(const std::string& file, std::string* net_file) const;
  // Puts the inputs into a net that has its state, and leaves out layers of other states. Returns
  // the bytes that the data layers whose place they take would read ahead.
  int64_t PutInputs(NetParameter* net) const;

 private:
  BlobDims DimsGiven(const NetParameter& net) const;
};

}  // namespace caffe::tools
