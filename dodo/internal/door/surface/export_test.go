package surface

// Catalogue is the published list.
func Catalogue() []string { return catalogue }

// GatewayOf is the gateway of an operation.
func GatewayOf(name string) string { return gatewayOf(name) }

// Gateways are the operations behind each gateway.
func Gateways() map[string][]string {
	m := map[string][]string{}
	for _, g := range gateways {
		m[g.name] = g.operations
	}
	return m
}
