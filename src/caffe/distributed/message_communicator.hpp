// A Communicator for ranks that share no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/distributed/communicator.hpp"
#include "caffe/distributed/transport.hpp"

namespace caffe {

// Size of the part of a reduction that each rank adds up at a time.
inline constexpr int64_t kReductionBlockBytes = int64_t{1} << 19;
// Reductions of fewer bytes are not relayed within machines: at 1 Gbit/s sending them again takes
// 0.3 ms, and a second round is one more wait for other processes.
inline constexpr int64_t kLargestDirectReduction = int64_t{1} << 15;

// Collectives over `transport`, AllReduceSumInPass() over `in_pass`; results are bitwise equal to
// those of MakeLocalCommunicators(). Each collective starts with a header, so ranks that have
// diverged throw InvalidArgument. Host memory only.
//
// `machines`: the name of each rank's machine, the same list on all ranks; sums cross a network
// once for each machine with an equal name (gather_routes.hpp).
//
// `tell` maps the error given to Abort() on this rank to the one that all ranks throw; may be null.
using TellError = std::function<std::exception_ptr(const std::exception_ptr&)>;
std::shared_ptr<Communicator> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                      std::shared_ptr<Transport> in_pass,
                                                      const std::vector<std::string>& machines,
                                                      TellError tell);

}  // namespace caffe
