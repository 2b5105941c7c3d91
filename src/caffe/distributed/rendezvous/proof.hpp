// Proof that two ranks know the same secret, without sending it.
#pragma once

#include <string>
#include <vector>

namespace caffe {

// 32 random bytes. Throws DeviceError where the system has none.
std::string MakeNonce();

// HMAC-SHA256 (RFC 2104) of the parts under the secret, 32 bytes.
std::string Proof(const std::string& secret, const std::vector<std::string>& parts);

// Constant-time comparison.
bool AreEqual(const std::string& one, const std::string& other);

}  // namespace caffe
