# A domain with records, and a server, with the provider for REST APIs (Mastercard/restapi).
# Token: export TF_VAR_token="$(cat /var/lib/brume/token)"

terraform {
  required_providers {
    restapi = {
      source  = "Mastercard/restapi"
      version = "~> 1.20"
    }
  }
}

variable "url" {
  type    = string
  default = "http://127.0.0.1:8080"
}

variable "token" {
  type      = string
  sensitive = true
}

provider "restapi" {
  uri = var.url
  # The response to a change of a server is its action, so the provider reads the object after a change.
  create_returns_object = true
  id_attribute          = "ID"
  headers = {
    Authorization = "Bearer ${var.token}"
    Content-Type  = "application/json"
    Prefer        = "wait=60"
  }
}

resource "restapi_object" "web" {
  path = "/server"
  data = jsonencode({ Name = "web-1", RAM = 256, HDD = 1 })
}

resource "restapi_object" "domain" {
  path = "/dns"
  data = jsonencode({ Name = "terraform.example", Labels = { managed-by = "terraform" } })
}

resource "restapi_object" "www" {
  path         = "/dns/recorda"
  read_path    = "/dns/record/{id}"
  destroy_path = "/dns/${restapi_object.domain.id}/{id}"
  data = jsonencode({
    DomainId = tonumber(restapi_object.domain.id)
    Name     = "www"
    IP       = jsondecode(restapi_object.web.api_response).IP
    TTL      = 300
  })
}
