// A place in the network.
#pragma once

#include <string>
#include <vector>

namespace caffe {

// A host by name or number, and a TCP port (0 to 65535; 0: whichever is free).
struct Address {
  std::string host;
  int port = 0;
};

// Parses "node1:29500", "10.0.0.1:29500" or "[fe80::1]:29500". Throws InvalidArgument for others.
Address ParseAddress(const std::string& text);

// In the form that ParseAddress() reads.
std::string ToText(const Address& address);

// The addresses of this machine's network interfaces, as numbers, without loopback and link-local
// ones.
std::vector<std::string> AddressesOfMachine();

}  // namespace caffe
