// TestPhase: runs a solver's test nets and reports their results.
#pragma once

#include <cstdint>
#include <functional>
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
  // Test nets share the parameters of the train net, which was built with `train`. Throws what
  // constructors of nets throw.
  TestPhase(const SolverContext& context, const NetOptions& train);

  const std::vector<std::shared_ptr<Net>>& nets() const { return nets_; }

  // The best models according to the tests.
  ModelChoice& choice() { return *choice_; }
  const ModelChoice& choice() const { return *choice_; }

  // Runs each net over test_iter batches or, without test_iter, over each record once, where the
  // last batch may be smaller. Reports and returns the results, which are equal on all ranks.
  // Outputs are means over the batches, weighted by their records. Calls `stops` between batches,
  // at the same positions on all ranks; returns nothing if it returned true.
  // If a loss or an output is not finite: throws Error if the trained weights are not finite
  // either, otherwise warns, because training does not depend on it.
  std::optional<std::vector<TestReport>> Run(const Moment& moment,
                                             const std::function<bool()>& stops);

  // Adds the best test and the positions in the data at `iteration`. A run that resumes there
  // repeats that iteration's test, so the positions are those before it.
  void Describe(int iteration, SolverProgress* progress) const;
  // True if no test has begun and the nets stand at these positions, with none for the beginning.
  bool AreAt(const std::vector<TestPosition>& positions) const;
  // Moves to the positions of a snapshot; to the beginning if they are not of these test nets.
  void ResumeFrom(uint64_t seed, const std::vector<TestPosition>& positions);

 private:
  struct TestNet {
    std::shared_ptr<Net> net;
    std::optional<EpochBatches> epoch;  // if each record is scored once
    TestPosition start = {};            // of the resumed run
    uint64_t tested = 0;                // batches tested since by all ranks
    // Position of its data layers after the last test; a caller may have changed it since.
    DeliveredRecords delivered = {};

    uint64_t RecordsOf(uint64_t batch) const {
      return epoch ? epoch->RecordsOf(batch % epoch->count()) : 1;
    }
  };
  void AddNet(const NetOptions& train, const TestNetDefinition& definition);
  void BeginEpoch(TestNet* test) const;
  TestPosition PositionOf(const TestNet& test) const;
  std::vector<TestPosition> Positions() const;
  std::vector<TestPosition> PositionsOfRoot() const;
  void MoveTo(const std::vector<TestPosition>& positions);
  std::optional<TestReport> RunOne(size_t index, const Moment& moment,
                                   const std::function<bool()>& stops);
  // Returns the record of the batch.
  std::vector<double> RunBatch(const TestNet& test, uint64_t batch, float* loss) const;
  void TakeNonFinite(size_t index, const Moment& moment, const std::string& what);
  // `batches`: one record each; `weights`: their numbers of data records, or 1 each.
  TestReport Report(size_t index, int iteration, const std::vector<std::vector<double>>& batches,
                    const std::vector<double>& weights) const;

  const SolverContext& context_;
  uint64_t seed_ = 0;
  std::vector<TestNet> tests_;
  std::vector<std::shared_ptr<Net>> nets_;  // the nets of tests_
  std::optional<ModelChoice> choice_;
  int begun_ = -1;                         // iteration of the last test
  std::vector<TestPosition> before_ = {};  // positions when it began
  bool is_interrupted_ = false;            // the last test
};

}  // namespace caffe
