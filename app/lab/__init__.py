"""The side panel: drafters, live plots, rule and sampling."""
