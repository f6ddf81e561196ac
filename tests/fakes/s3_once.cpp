// s3_once: one request of the client of S3 that storage_protocols has, for tests beside other clients.
// Usage: s3_once ENDPOINT BUCKET ACCESS_KEY SECRET_KEY put|get|size|lists|remove KEY; put reads stdin, get writes
// stdout, the others print a word. Exit code 1 with the reason on stderr.
#include <exception>
#include <iostream>
#include <iterator>
#include <span>
#include <string>

#include "workloads/protocols/s3_client.h"

namespace {

int act(assay::protocols::S3Client& client, const std::string& verb, const std::string& key) {
  if (verb == "put") {
    const std::string body{std::istreambuf_iterator<char>(std::cin), {}};
    std::cout << client.put(key, std::as_bytes(std::span(body))) << "\n";
  } else if (verb == "get") {
    const auto found = client.get(key);
    if (!found) return 1;
    std::cout.write(reinterpret_cast<const char*>(found->body.data()),
                    static_cast<std::streamsize>(found->body.size()));
  } else if (verb == "size") {
    const auto size = client.size(key);
    std::cout << (size ? std::to_string(*size) : "none") << "\n";
  } else if (verb == "lists") {
    std::cout << (client.lists(key) ? "yes" : "no") << "\n";
  } else if (verb == "remove") {
    client.remove(key);
  } else {
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span words(argv, static_cast<std::size_t>(argc));
  if (words.size() != 7) return 2;
  try {
    assay::protocols::S3Client client({.endpoint = words[1],
                                       .region = "us-east-1",
                                       .bucket = words[2],
                                       .access_key = words[3],
                                       .secret_key = words[4]});
    return act(client, words[5], words[6]);
  } catch (const std::exception& why) {
    std::cerr << why.what() << "\n";
    return 1;
  }
}
