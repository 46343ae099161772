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
      client_id: "poster",
      client_secret: "secret of the pipeline",
      token_endpoint_auth_method: "client_secret_post",
      redirect_uris: [],
      grant_types: ["client_credentials"],
      response_types: [],
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
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
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
// The groups of a person, set by the tests.
provider.use(async (ctx, next) => {
  const [, person] = /^\/test\/groups\/(\w+)$/.exec(ctx.path) ?? [];
  if (person === undefined) return next();
  const chunks = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  const groups = JSON.parse(Buffer.concat(chunks).toString());
  if (groups === null) delete given.people[person].groups;
  else given.people[person].groups = groups;
  ctx.status = 204;
});
provider.on("server_error", (_ctx, error) => console.error(error));
provider.listen(given.port, "127.0.0.1", () => console.log("listening"));
