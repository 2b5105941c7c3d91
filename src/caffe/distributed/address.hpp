// A place in the network.
#pragma once

#include <string>

namespace caffe {

// A host by name or number, and a TCP port (0 to 65535; 0: whichever is free).
struct Address {
  std::string host;
  int port = 0;
};

// Of "node1:29500", "10.0.0.1:29500" or "[fe80::1]:29500". Throws InvalidArgument for other texts.
Address ParseAddress(const std::string& text);

// In the form that ParseAddress() reads.
std::string ToText(const Address& address);

}  // namespace caffe
