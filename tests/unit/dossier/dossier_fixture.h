// dossier_fixture: a signed dossier of a run with every outcome, and ways to change and sign it again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/evidence/evidence_files.h"
#include "reports/page/render.h"
#include "tests/unit/run_fixture.h"

namespace assay::dossier {

namespace fs = std::filesystem;
using nlohmann::json;

inline constexpr const char* kImported =
    "{\"schema\":\"assay.imported/1\",\"sequence\":0,\"source\":{\"tool\":\"fio\"}}\n";
inline constexpr const char* kIssued = "2026-01-05T08:00:00.000Z";

inline PrivateKey key_of(char filling) { return PrivateKey::from_seed(std::string(32, filling)).value(); }

inline void render(const std::string& run, const std::string& self_signed = "") {
  const auto files = evidence::read_evidence_files(run).value();
  fixture::write(run + "/report.html",
                 page::render_html(page::report_content(evidence::examine(files).value(), evidence::evidence_in(files),
                                                        self_signed)));
}

template <class T>
std::string said(const std::expected<T, InputError>& result) {
  return result ? "done" : result.error().where + ": " + result.error().what;
}

class DossierTest : public testing::Test {
 protected:
  void SetUp() override {
    fixture::make_run(run_, fixture::Kind::mixed);
    render(run_);
    const auto made = make_dossier(request(), vendor_);
    ASSERT_TRUE(made) << made.error().text();
  }

  [[nodiscard]] SignRequest request() const {
    return {.run_directory = run_,
            .dossier = dossier_,
            .role = "test lead",
            .name = "Ada Example",
            .organisation = "Example Lab",
            .issued_at = kIssued};
  }
  /// "verified", or why not.
  [[nodiscard]] std::string verify(const std::vector<PublicKey>& keys, const Expectations& expected = {}) const {
    const auto verified = verify_dossier(dossier_, keys, expected);
    return verified ? "verified" : verified.error().where + ": " + verified.error().what;
  }
  [[nodiscard]] std::string verify() const { return verify({vendor_.public_key()}); }
  [[nodiscard]] std::string path(const std::string& name) const { return dossier_ + "/" + name; }

  /// Signs the statement again with the right key after `change`, as a dishonest signer can.
  void resign(const std::function<void(json&)>& change) {
    auto envelope = read_envelope(fixture::read(path(kStatementFile)), "e").value();
    json document = json::parse(envelope.payload);
    change(document);
    resign_bytes(canonical_json(document).value());
  }
  void resign_bytes(const std::string& payload, const std::string& type = std::string(kPayloadType)) {
    Envelope envelope{.payload_type = type, .payload = payload, .signatures = {}};
    sign(envelope, vendor_);
    fixture::write(path(kStatementFile), envelope_text(envelope));
  }
  /// Changes a file and brings manifest and statement in line, signed by the right key.
  void replace_and_resign(
      const std::string& name, const std::string& bytes, const std::function<void(json&)>& change = [](json&) {}) {
    const auto before = fixture::read(path(name)).size();
    fixture::write(path(name), bytes);
    auto manifest = evidence::read_manifest(fixture::read(path(kManifestFile)), "m").value();
    manifest[name] = files::sha256(bytes);
    fixture::write(path(kManifestFile), evidence::manifest_text(manifest));
    resign([&](json& document) {
      auto& evidence = document["predicate"]["evidence"];
      const auto summary =
          evidence::summary_of(manifest, evidence["totalBytes"].get<std::uint64_t>() - before + bytes.size());
      evidence = {{"manifestSha256", summary.manifest_sha256},
                  {"fileCount", summary.file_count},
                  {"totalBytes", summary.total_bytes},
                  {"merkleRoot", summary.merkle_root}};
      change(document);
    });
  }

  fixture::TemporaryFolder folder_;
  std::string run_ = folder_.path() + "/run";
  std::string dossier_ = folder_.path() + "/run/dossier";
  PrivateKey vendor_ = key_of('v');
  PrivateKey buyer_ = key_of('b');
};

}  // namespace assay::dossier
