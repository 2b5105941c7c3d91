// TestPhase: the test nets of a solver, and what it says of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/epoch_batches.hpp"
#include "caffe/net.hpp"
#include "caffe/solvers/model_choice.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/solver_nets.hpp"

namespace caffe {

class TestPhase {
 public:
  // Test nets share the parameters of the train net, which was made with `train`. Throws what nets
  // throw.
  TestPhase(const SolverContext& context, const NetOptions& train);

  const std::vector<std::shared_ptr<Net>>& nets() const { return nets_; }

  // Which models the tests have shown to be the best.
  ModelChoice& choice() { return *choice_; }
  const ModelChoice& choice() const { return *choice_; }

  // One pass of each net: test_iter batches or, without test_iter, each record of the data once,
  // for which the last batch may be smaller. Reported for the iteration; the reports come back, on
  // all ranks alike. Outputs are means over the batches, weighted by their records. Between batches
  // asks whether to stop, on all ranks in the same place, and returns nothing where the answer was
  // yes.
  // Where a loss or an output is not finite: throws Error if the trained weights are not either,
  // else warns, because training does not depend on it.
  std::optional<std::vector<TestReport>> Run(const Moment& moment,
                                             const std::function<bool()>& stops);
  // As after restoring a snapshot.
  void ResumeFrom(uint64_t seed);

 private:
  struct TestNet {
    std::shared_ptr<Net> net;
    std::optional<EpochBatches> epoch;  // where each record is scored once
    uint64_t tested = 0;                // batches by all ranks
    // Where its data layers were after the last test, which a caller may have moved since.
    std::map<std::string, uint64_t> delivered = {};

    uint64_t RecordsOf(uint64_t batch) const {
      return epoch ? epoch->RecordsOf(batch % epoch->count()) : 1;
    }
  };
  void AddNet(const NetOptions& train, const TestNetDefinition& definition);
  void BeginEpoch(TestNet* test) const;
  std::optional<TestReport> RunOne(size_t index, const Moment& moment,
                                   const std::function<bool()>& stops);
  // What the batch is remembered by.
  std::vector<double> RunBatch(const TestNet& test, uint64_t batch, float* loss) const;
  void TakeNonFinite(size_t index, const Moment& moment, const std::string& what);
  // `batches`: what each of them is remembered by; `weights`: their records, or 1 each.
  TestReport Report(size_t index, int iteration, const std::vector<std::vector<double>>& batches,
                    const std::vector<double>& weights) const;

  const SolverContext& context_;
  uint64_t seed_ = 0;
  std::vector<TestNet> tests_;
  std::vector<std::shared_ptr<Net>> nets_;  // of tests_
  std::optional<ModelChoice> choice_;
};

}  // namespace caffe
