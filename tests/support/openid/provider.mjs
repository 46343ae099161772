// A certified OpenID provider with people who need no password, run by tests/support/openid/provider.py.
import Provider from "oidc-provider";

const given = JSON.parse(process.argv[2]);
const provider = new Provider(given.issuer, {
  clients: [
    {
      client_id: given.client_id,
      client_secret: given.client_secret,
      redirect_uris: given.redirect_uris,
      post_logout_redirect_uris: given.post_logout_uris,
      grant_types: ["authorization_code"],
      response_types: ["code"],
    },
    {
      client_id: "pipeline",
      client_secret: "secret of the pipeline",
      redirect_uris: [],
      grant_types: ["client_credentials"],
      response_types: [],
    },
  ],
  jwks: { keys: given.keys },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  pkce: { required: () => true },
  cookies: { keys: ["a key of the tests"] },
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (ctx) =>
        ctx.oidc.client?.clientId === "pipeline" ? "urn:leadline" : undefined,
      getResourceServerInfo: () => ({
        scope: "",
        audience: "urn:leadline",
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  ttl: { ClientCredentials: 600, AccessToken: 600, IdToken: 600 },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, ...given.people[id] }),
  }),
});
provider.on("server_error", (_ctx, error) => console.error(error));
provider.listen(given.port, "127.0.0.1", () => console.log("listening"));
