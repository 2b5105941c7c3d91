#include "caffe/distributed/rendezvous/proof.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "caffe/error.hpp"

namespace caffe {

std::string MakeNonce() {
  std::string nonce(32, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), 32) != 1) {
    throw DeviceError("the system gives no random numbers");
  }
  return nonce;
}

std::string Proof(const std::string& secret, const std::vector<std::string>& parts) {
  // With their lengths, so that no two lists of parts make one text.
  std::string text;
  for (const std::string& part : parts) text += StrCat(part.size(), ":", part);
  std::string proof(32, '\0');
  unsigned int size = 0;
  if (::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(),
             reinterpret_cast<unsigned char*>(proof.data()), &size) == nullptr) {
    throw InternalError("OpenSSL computes no HMAC-SHA256");
  }
  return proof;
}

bool AreEqual(const std::string& one, const std::string& other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace caffe
