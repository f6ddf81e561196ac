// grafana: a dashboard over the exported metrics, and the file with which Grafana finds it.
#pragma once

#include <string>

namespace assay::nightly {

/// The dashboard as JSON, without an id; its data source is a variable.
std::string grafana_dashboard();

/// The provider (provisioning/dashboards/assay.yaml) that loads dashboards from `folder`.
std::string grafana_provider(const std::string& folder);

}  // namespace assay::nightly
