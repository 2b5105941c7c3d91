#include "caffe/distributed/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <array>
#include <charconv>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe {

Address ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  Address address;
  const auto refuse = [&](const char* why) {
    throw InvalidArgument(StrCat("'", Printable(text), "' is not an address: ", why,
                                 "; give it as host:port, as in node1:29500"));
  };
  if (colon == std::string::npos) refuse("it has no port");
  address.host = text.substr(0, colon);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    refuse("numbers of IPv6 stand in brackets");
  }
  if (address.host.empty()) refuse("it has no host");
  if (address.host.find('\0') != std::string::npos) refuse("its host has a null character");
  const char *const begin = text.data() + colon + 1, *const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc() || last != end || address.port < 0 || address.port > 65535) {
    refuse("its port is not a number from 0 to 65535");
  }
  return address;
}

std::string ToText(const Address& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return is_ipv6 ? StrCat("[", address.host, "]:", address.port)
                 : StrCat(address.host, ":", address.port);
}

std::vector<std::string> AddressesOfMachine() {
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) throw DeviceError("the system lists no network interfaces");
  std::vector<std::string> addresses;
  for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 ||
        (one->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* number = nullptr;
    if (one->ifa_addr->sa_family == AF_INET) {
      number = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&ipv6)) number = &ipv6;
    }
    if (number == nullptr) continue;
    addresses.emplace_back(::inet_ntop(one->ifa_addr->sa_family, number, text.data(), text.size()));
  }
  ::freeifaddrs(interfaces);
  return addresses;
}

}  // namespace caffe
