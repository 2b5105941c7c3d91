// A Communicator with an error that checks have to notice.
#pragma once

#include <memory>

#include "caffe/distributed/communicator.hpp"

namespace caffe::fuzz {

enum class Plant {
  kNone,
  kSumInOrderOfArrival,  // instead of the order of the ranks
  kKeepsErrorToItself,   // a rank that fails tells nobody, and continues sending heartbeats
  kIgnoresLoss,          // a rank that learns that another one is lost continues waiting
  kNamesFilesAtOnce,     // snapshots get their names before their bytes
  kNoSynchronization,    // files are not synchronized
  kRecordShift,          // a resumed run begins one record too late
};
constexpr int kPlants = 7;

const char* NameOf(Plant plant);

// Returns `communicator` with the planted error, or unchanged if there is none.
std::shared_ptr<Communicator> WithPlant(Plant plant, std::shared_ptr<Communicator> communicator);

}  // namespace caffe::fuzz
