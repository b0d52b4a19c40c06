----------------------------------------------------------------------------
-- Who asks the server: a program, a person, or a page of another site.
--
-- A browser sends requests for any page that it shows. A page cannot read our answers, but each request could start
-- a recording.
----------------------------------------------------------------------------

local http = require("sysprof.serve.http")

local asker = {}

-- Returns the name of a host in the header, without its port and in lower case.
local function host_name(host)
  local name = host:match("^%[([%x:.]+)%]:?%d*$") or host:match("^([^:]*):%d*$") or host:match("^[^:]*$")
  return name and name:lower():gsub("%.$", "")
end

-- Returns why a request for a host is refused, or nil. own: the name or address that the server listens to. A page
-- can let its own name mean this machine. Browsers do not tell an address outside of loop-back, such as 0.0.0.0, which
-- site asks.
function asker.wrong_host(fields, own)
  if not fields.host then return nil end	-- Each browser sends it.
  local name = host_name(fields.host)
  if name and (name == "localhost" or name == "::1" or name == own:lower() or name:find("^127%.%d+%.%d+%.%d+$")) then
    return nil
  end
  return ("expected the host localhost, 127.0.0.1 or ::1, got '%s'; --listen=HOST:PORT allows another one")
	 :format(http.shown(fields.host))
end

-- Does a page of another site ask? Another port is another site. A page can hide its address, but not Sec-Fetch-Site.
local function is_foreign(fields)
  local site, from = fields["sec-fetch-site"], fields.origin or fields.referer
  if site then return site ~= "same-origin" and site ~= "none" end
  if not from or from == "" then return false end
  local host = from:match("^https?://([^/?#]*)")
  return not (host and fields.host and host:lower() == fields.host:lower())
end

-- Does a person follow a link, as far as the browser tells?
local function may_be_link(fields)
  local dest = fields["sec-fetch-dest"]
  return dest == nil or dest == "document"
end

-- Does a browser not tell which site asks? For loop-back, each browser since 2023 does.
local function is_old_browser(fields)
  return fields["sec-fetch-site"] == nil and (fields["user-agent"] or ""):find("^Mozilla/") ~= nil
end

-- Returns why a request is refused, or nil. acts: the answer records, or asks a program for its coroutines; has_token:
-- only who knows a token asks.
function asker.wrong_site(fields, acts, has_token)
  if is_foreign(fields) and not may_be_link(fields) then
    return "a page of another site asked; expected a page of this server, a link, or a program"
  elseif acts and is_foreign(fields) then
    return "a page of another site asked for a recording; open the start page of this server"
  elseif acts and not has_token and is_old_browser(fields) then
    return "the browser does not tell which site asked for a recording; expected one that sends Sec-Fetch-Site, or curl"
  end
end

return asker
