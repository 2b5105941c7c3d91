// A Communicator with an error, for checks that have to notice it.
#pragma once

#include <memory>

#include "caffe/distributed/communicator.hpp"

namespace caffe::fuzz {

enum class Plant {
  kNone,
  kSumInOrderOfArrival,  // instead of that of the ranks
  kKeepsErrorToItself,   // a rank that fails tells nobody, and goes on sending heartbeats
  kIgnoresLoss,          // a rank that is told that another one is lost goes on waiting
  kNamesFilesAtOnce,     // snapshots get their names before their bytes
  kNoSynchronization,    // files are not synchronized
  kRecordShift,          // a resumed run begins one record too late
};
constexpr int kPlants = 7;

const char* NameOf(Plant plant);

// `communicator` with the planted error, or itself where it has none.
std::shared_ptr<Communicator> WithPlant(Plant plant, std::shared_ptr<Communicator> communicator);

}  // namespace caffe::fuzz
