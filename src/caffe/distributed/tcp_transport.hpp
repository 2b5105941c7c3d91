// A Transport over one TCP connection for each other rank.
#pragma once

#include <memory>
#include <vector>

#include "caffe/distributed/heartbeat.hpp"
#include "caffe/distributed/socket.hpp"
#include "caffe/distributed/transport.hpp"

namespace caffe {

// Connects all pairs of ranks, `count` times: each returned transport has connections of its own.
// All ranks call it. `port` listens at RendezvousOptions::port for the ranks with higher numbers.
// Throws DeviceError if a rank does not connect in time or is lost. `heartbeat` must outlive the
// transports.
//
// Exchange() throws when a rank is lost. Heartbeat notices that as long as rank 0 takes part; once
// it has left, whoever sends and takes nothing for RendezvousOptions::silence_seconds is lost.
std::vector<std::shared_ptr<Transport>> ConnectRanks(const RendezvousOptions& options,
                                                     Heartbeat* heartbeat, Socket* port, int count);

}  // namespace caffe
