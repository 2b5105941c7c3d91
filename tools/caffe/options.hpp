// Options that several commands of `caffe` share. Options of a single command are declared in that
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

// Declare --model and --solver; the file may also be the word after the command. Commands check
// with RequireModel that it was given.
CLI::Option* AddModel(CLI::App& app, std::string* model);
CLI::Option* AddSolver(CLI::App& app, std::string* solver);
void AddWeights(CLI::App& app, std::string* weights);
// At least 1.
void AddIterations(CLI::App& app, int* iterations);
// At least 1, or "all".
void AddIterationsOrAll(CLI::App& app, int* iterations, bool* all);

// Which layers are split across ranks: "auto", or "none" except for layers whose definition asks
// for it.
void AddParallel(CLI::App& app, std::string* parallel);

// --json: print the result as one JSON document, with nothing else on standard output.
void AddJsonFlag(CLI::App& app, bool* json);

// --plugin. LoadGivenPlugins() loads the plugins that the command line names, before the command
// runs.
void AddPlugins(CLI::App& app);
void LoadGivenPlugins();

// --max_decoded_mb, for all commands: see caffe/decode_limit.hpp.
void AddDecodeLimit(CLI::App& app);

// Parses "10%" as 0.1. Throws InvalidArgument unless it is above 0% and below 100%.
double ParseShare(const std::string& text);

// Throws InvalidArgument for an empty name.
void RequireModel(const std::string& model);

// Throws InvalidArgument for a folder; `usual` is the file of a model's folder to give instead.
void RequireNoFolder(const std::string& path, const std::string& usual);

// The state and the options with which a net is built.
struct NetFlags {
  Phase phase = TRAIN;
  int level = 0;
  std::vector<std::string> stages;
  std::optional<Precision> precision;  // none: the solver's field, or FP32
  std::string calibration;             // see NetOptions
  int64_t memory_limit = 0;            // in MiB; 0: the solver's field, or no limit
  std::vector<std::string> overrides;  // "path=value": see io/overrides.hpp
  std::vector<std::string> inputs;     // "blob=N,C,H,W": see io/data_inputs.hpp
  bool lenient = false;                // see NetOptions
  bool needs_data = true;              // false: inputs replace data that does not exist

  // Each command declares only the options that it supports.
  void AddPhase(CLI::App& app);
  void AddState(CLI::App& app);  // --level, --stage
  CLI::Option* AddPrecision(CLI::App& app);
  void AddCalibration(CLI::App& app);
  void AddMemoryLimit(CLI::App& app);
  void AddOverrides(CLI::App& app, const std::string& example);  // --set
  void AddInputs(CLI::App& app);                                 // --input
  // Options that Caffe does not have: --plugin, --allow_python, --lenient.
  void AddForeign(CLI::App& app);

  NetOptions ToNetOptions(bool with_backward) const;
  // Builds the net in `file` with these flags applied. `read_ahead` gets the result of PutInputs().
  // `prepare` may change the definition first.
  std::unique_ptr<Net> MakeNet(const std::string& file, Phase for_phase, const NetOptions& options,
                               int64_t* read_ahead = nullptr,
                               const std::function<void(NetParameter*)>& prepare = nullptr) const;
  // Builds the net in `file` for inference, with the weights of one or several .caffemodel files.
  // They are required if the net has parameters. `whole_epochs`: see NetOptions.
  std::unique_ptr<Net> MakeTrainedNet(const std::string& file, const std::string& weights,
                                      bool whole_epochs = false) const;
  // The definition that MakeNet() would build.
  NetParameter ReadNet(const std::string& file, Phase for_phase, int64_t* read_ahead = nullptr,
                       const std::function<void(NetParameter*)>& prepare = nullptr) const;
  // The solver in `file` with these flags applied. Overrides of a net (net_param..., layer[...])
  // change the net that the solver names; its file is then `net_file`. Inputs are left to
  // PutInputs().
  SolverParameter ReadSolver(const std::string& file, std::string* net_file) const;
  // Puts the inputs into a net that has its state, and removes layers of other states. Returns the
  // number of bytes that the replaced data layers would read ahead.
  int64_t PutInputs(NetParameter* net) const;

 private:
  BlobDims DimsGiven(const NetParameter& net) const;
};

}  // namespace caffe::tools
